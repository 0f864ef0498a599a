-- Takes a lock and draws its fencing token, both or neither.
-- KEYS[1]  the lock
-- KEYS[2]  the counter of its tokens, in the same hash slot; it never expires
-- ARGV[1]  the owner
-- ARGV[2]  the time-to-live in milliseconds, at least 1
-- Result   the token, from 1, if the lock was free; 0 if it is held
--
-- The counter comes first: should anything fail after it, a number is lost. The other way round, a lock would be left that
-- nobody knows to be theirs.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
local token = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return token
