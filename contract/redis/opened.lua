-- @include common.lua
-- @include version.lua
-- opened: whether a client that opens the store knows the version of its data.
-- Head: nothing further.
-- In:  nothing.
-- Out: [the data's version, the one that this script knows]. Where they differ, the client must not go on.
-- Invariant: changes nothing.

return { tonumber(redis.call('GET', K.version) or VERSION), VERSION }
