package models

// lockCase is a told history and what the linearizability check must say of it.
type lockCase struct {
	name     string
	contract Contract
	story    string
	want     Severity // "": it passes
}

// lockCases hold a lock to each rule, from both sides where it has two. A time-to-live of 100 ms ends between 98 ms after the
// call and 102 ms after the answer.
var lockCases = []lockCase{
	{"granted, released, granted", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..11 ok A
		w2/c0 acquire k 20..21 ok B
		w2/c0 release k 30..31 ok B`, ""},
	{"two hold at once", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 20..21 ok B`, Safety},
	{"two at once on different keys", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire j 20..21 ok B`, ""},
	{"granted while the release is under way", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..20 ok A
		w2/c0 acquire k 12..13 ok B`, ""},
	{"granted before the release was called", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 5..9 ok B
		w1/c0 release k 10..20 ok A`, Safety},
	{"refused while held", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 20..21 refused B
		w1/c0 release k 30..31 ok A`, ""},
	{"refused though nobody ever held it", Contract{}, `
		w2/c0 acquire k 20..21 refused B`, Availability},
	{"refused after the release", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..11 ok A
		w2/c0 acquire k 20..21 refused B`, Availability},
	{"a refusal holds nothing", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 5..6 refused B
		w1/c0 release k 10..11 ok A
		w3/c0 acquire k 20..21 ok C`, ""},
	{"a failed acquire holds nothing", Contract{}, `
		w1/c0 acquire k 0..1 failed A
		w2/c0 acquire k 20..21 refused B`, Availability},
	{"a failed release frees nothing", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 5..6 failed A
		w2/c0 acquire k 20..21 ok B`, Safety},

	{"granted just when the time-to-live can have ended", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 97..98 ok B`, ""},
	{"granted just before it can", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 96..97.9 ok B`, Safety},
	{"refused just when the time-to-live may still run", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 103..104 refused B`, ""},
	{"refused when it can't any more", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 103.1..104 refused B`, Availability},
	{"a time-to-live of nothing never ends", Contract{}, `
		w1/c0 acquire k 0..1 ok A ttl=0
		w2/c0 acquire k 9000..9001 refused B`, ""},
	{"granted early, within the clock skew that the contract allows", Contract{ClockSkew: 20e6}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 77..78 ok B`, ""},
	{"granted earlier than that", Contract{ClockSkew: 20e6}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 77..77.9 ok B`, Safety},
	{"refused late, within the clock skew", Contract{ClockSkew: 20e6}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 123..124 refused B`, ""},
	{"refused later than that", Contract{ClockSkew: 20e6}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 123.1..124 refused B`, Availability},
	{"refused late by as much as the contract allows", Contract{LateBy: 1}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 203..204 refused B`, ""},
	{"refused later than that", Contract{LateBy: 1}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 203.1..204 refused B`, Availability},
	{"an expiry frees only its own grant", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 5..6 unknown A    # it took effect: B was granted
		w2/c0 acquire k 20..21 ok B
		w3/c0 acquire k 110..111 ok C`, Safety},

	{"extended, so refused after the first time-to-live", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..81 ok A
		w2/c0 acquire k 150..151 refused B`, ""},
	{"extended, so never granted after the first time-to-live", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..81 ok A
		w2/c0 acquire k 150..151 ok B`, Safety},
	{"extended, and granted after the second", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..81 ok A
		w2/c0 acquire k 177..178 ok B`, ""},
	{"extended, and refused after the second", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..81 ok A
		w2/c0 acquire k 184..185 refused B`, Availability},
	{"extended while the first expiry is due", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 99..100 ok A
		w2/c0 acquire k 150..151 ok B`, Safety},
	{"extended after it expired", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 150..151 ok A`, Safety},
	{"extended after it expired, where that may be", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 150..151 ok A
		w2/c0 acquire k 160..161 refused B`, ""},
	{"expired where it can be extended, and not taken: refused all the same", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 150..151 refused B`, Availability},
	{"expired where it can be extended, and taken", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 150..151 ok B`, ""},
	{"extended after another took it", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 150..151 ok B
		w1/c0 extend k 160..161 ok A`, Safety},
	{"released after another took it", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 150..151 ok B
		w1/c0 release k 160..161 ok A`, Safety},
	{"extended after it was released", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..11 ok A
		w1/c0 extend k 20..21 ok A`, Safety},
	{"extended by one who never held", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 extend k 20..21 ok B`, Safety},
	{"an extension does not hand the lock over", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 50..51 ok A
		w1/c0 extend k 120..121 ok A
		w1/c0 release k 130..131 ok A
		w2/c0 acquire k 140..141 ok B`, ""},
	{"told that it is not the holder while it is", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 20..21 refused A`, Availability},
	{"told so after it expired", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 98..99 refused A`, ""},
	{"told so after it expired, where it could be extended", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 150..151 refused A`, ""},
	{"told so while another holds", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 120..121 ok B
		w1/c0 extend k 130..131 refused A
		w1/c0 release k 140..141 refused A`, ""},

	{"released by one who never held", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 release k 20..21 ok B`, Safety},
	{"released after it expired", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 150..151 ok A`, Safety},
	{"released after it expired, where that may be", Contract{AfterExpiry: Takeable}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 150..151 ok A`, ""},
	{"told at its release that it is not the holder while it is", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 20..21 refused A`, Availability},
	{"told so after it expired", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 150..151 refused A`, ""},
	{"deleted by another's release", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 120..121 ok B
		w1/c0 release k 130..131 ok A
		w3/c0 acquire k 140..141 ok C`, Safety},

	{"a slow acquire may have been granted early", Contract{}, `
		w1/c0 acquire k 0..150 ok A
		w2/c0 acquire k 151..152 ok B`, ""},
	{"or late", Contract{}, `
		w1/c0 acquire k 0..150 ok A
		w2/c0 acquire k 252..253 refused B`, ""},
	{"but it expires all the same", Contract{}, `
		w1/c0 acquire k 0..150 ok A
		w2/c0 acquire k 252.1..253 refused B`, Availability},
	{"and the expiry of a slow acquire frees no other", Contract{}, `
		w2/c0 acquire k 0..1 ok B
		w2/c0 release k 2..3 unknown B
		w1/c0 acquire k 0..150 ok A
		w3/c0 acquire k 151..152 ok C
		w4/c0 acquire k 160..161 ok D`, Safety},
	{"the expiry of an acquire that may not have been frees no other", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w2/c0 acquire k 200..201 ok B
		w3/c0 acquire k 210..211 ok C`, Safety},
	{"nor does it matter who holds when it is over", Contract{}, `
		w1/c0 acquire k 0..150 ok A
		w2/c0 acquire k 200..201 ok B
		w2/c0 release k 260..261 ok B`, ""},
	{"a slow extension expires too", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 90..250 ok A
		w2/c0 acquire k 352.1..353 refused B`, Availability},

	{"an unknown acquire may hold", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w2/c0 acquire k 60..61 refused B`, ""},
	{"or not", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w2/c0 acquire k 60..61 ok B`, ""},
	{"or take effect late", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w2/c0 acquire k 1151..1152 refused B`, ""},
	{"but not for ever: it has a bound, and an expiry", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w2/c0 acquire k 1152.1..1153 refused B`, Availability},
	{"a killed worker's acquire is a lock that nobody has, and expires", Contract{}, `
		w1/c0 acquire k 0..? unknown A
		! died w1 20
		w2/c0 acquire k 1200..1201 refused B`, Availability},
	{"unless nobody knows for how long a request can be under way", Contract{RequestBound: Unbounded}, `
		w1/c0 acquire k 0..? unknown A
		! died w1 20
		w2/c0 acquire k 9000..9001 refused B`, ""},
	{"an unknown acquire is no licence for two", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w2/c0 acquire k 60..61 ok B
		w3/c0 acquire k 70..71 ok C`, Safety},
	{"an unknown acquire that is released was granted", Contract{}, `
		w1/c0 acquire k 0..50 unknown A
		w1/c0 release k 55..56 ok A
		w2/c0 acquire k 60..61 ok B`, ""},
	{"an unknown extension may hold", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..85 unknown A
		w2/c0 acquire k 150..151 refused B`, ""},
	{"or not", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..85 unknown A
		w2/c0 acquire k 150..151 ok B`, ""},
	{"an unknown extension can come late, and still expires", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 extend k 80..85 unknown A
		w1/c0 extend k 90..91 ok A
		w2/c0 acquire k 1500..1501 refused B`, Availability},
	{"an unknown release may free", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 5..10 unknown A
		w2/c0 acquire k 20..21 ok B`, ""},
	{"or not", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 5..10 unknown A
		w2/c0 acquire k 20..21 refused B`, ""},
	{"an unknown release of nothing frees nothing", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 release k 5..10 unknown B
		w3/c0 acquire k 20..21 ok C`, Safety},

	{"renewed by itself", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 900..901 refused B
		w1/c0 release k 950..951 ok A
		w2/c0 acquire k 960..961 ok C`, ""},
	{"renewed by itself, until it was released", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 950..951 ok A
		w2/c0 acquire k 960..961 refused B`, Availability},
	{"renewed by itself, until the loss was reported and the last renewal was over", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 lost k 500..500 ok A
		w2/c0 acquire k 1602..1603 refused B`, ""},
	{"and no longer", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 lost k 500..500 ok A
		w2/c0 acquire k 1602.1..1603 refused B`, Availability},
	{"renewed by itself, until a release that found it gone", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 499..500 unknown A
		w2/c0 acquire k 4000..4001 refused B`, Availability},
	{"renewed by itself, until its worker died", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		! died w1 500
		w2/c0 acquire k 1602..1603 refused B`, ""},
	{"and no longer", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		! died w1 500
		w2/c0 acquire k 1602.1..1603 refused B`, Availability},
	{"renewed by itself, and nothing ended it", Contract{Renews: RenewsItself}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 90000..90001 refused B`, ""},
	{"a reported loss ends no hold that its client renews", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 lost k 50..50 ok A
		w2/c0 acquire k 60..61 ok B`, Safety},

	{"a spurious refusal, where refusals may be", Contract{Refusals: MayBeSpurious}, `
		w2/c0 acquire k 20..21 refused B`, ""},
	{"but two at once are two at once", Contract{Refusals: MayBeSpurious}, `
		w1/c0 acquire k 0..1 ok A
		w2/c0 acquire k 10..11 refused B
		w2/c0 acquire k 20..21 ok C`, Safety},
	{"widened intervals hide what is not definite", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..11 ok A
		w2/c0 acquire k 8..9 ok B
		clock w2 2`, ""},
	{"and nothing that is", Contract{}, `
		w1/c0 acquire k 0..1 ok A
		w1/c0 release k 10..11 ok A
		w2/c0 acquire k 4..5 ok B
		clock w2 2`, Safety},
}
