-- Compare and delete: frees a lock if it is still the caller's.
-- KEYS[1]  the lock
-- ARGV[1]  the owner
-- Result   1 if it was freed, 0 if somebody else or nobody holds it
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
