#!lua
-- follow_rated: as follow, where jobs have rates, or lanes are held.
-- KEYS
-- USES clock layout job lanes children waits expiry rates settle queues insert related rated follow
-- ARGV 1 offset, then as follow; followers as library/claim/rated.lua reads them
-- Returns the refused ids.

return follow_all(insert_rated)
