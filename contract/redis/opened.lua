-- @include version.lua
-- opened: whether a client that opens the store knows the version of its data.
-- KEYS: version
-- In:  nothing.
-- Out: [the data's version, the one that this script knows]. Where the first is greater, the client must not go on.
-- Invariant: changes nothing.

return { version_of(KEYS[1]), VERSION }
