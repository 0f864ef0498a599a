-- Compare and extend: makes a lock's time-to-live run anew if it is still the caller's.
-- KEYS[1]  the lock
-- ARGV[1]  the owner
-- ARGV[2]  the time-to-live in milliseconds, at least 1
-- Result   1 if it was extended, 0 if somebody else or nobody holds it
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
