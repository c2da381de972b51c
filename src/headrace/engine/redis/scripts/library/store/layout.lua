-- layout: where things are in the small record that changes as a job moves.
-- codec.py reads the same layout. First numbers: state, flags, width, token, attempt; when it is
-- due, was created, started, completed, in seconds; how long the worker is. Then texts that rarely
-- change, with a zero byte between them: order, queue, lane, task, key, source; of a child also its
-- parent and its group ('' none). Then the worker.
-- No name contains a control character, so none contains a zero.

local NUMBERS = '<BBHIIddddH'
-- Where the order begins, where it ends, and where the queue begins.
local TEXTS = 47
local ORDER_END = 63
local QUEUE = 65
local SCHEDULED = 0
local PENDING = 2
local RUNNING = 3
local COMPLETED = 4
local CANCELLED = 7
-- Flags add up: 1 holds its lane place during a retry, 2 pinned to its place, 4 asked to stop, 8 has a
-- parent, 16 awaits something while it is scheduled, 32 has to start by a time, 64 has a rate, 128 was
-- parked and has not been claimed since.
local HOLD = 1
local PINNED = 2
local ASKED = 4
local CHILD = 8
local AWAITING = 16
local EXPIRES = 32
local RATED = 64
local PARKED = 128
-- When a parked job was completed, if it was not pinned before.
local UNPINNED = -1
-- What library/jobs/insert.lua is handed for a job, and where in it the record's texts begin.
local HEAD = '<HBhddss'
local HEAD_TEXTS = 22
