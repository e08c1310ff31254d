-- The version of the data: of what the keys are called and what they hold. Each change that an earlier client would misread raises it.
-- No key: no queue was registered yet.

local VERSION = 1
local function version_of(key) return tonumber(redis.call('GET', key) or VERSION) end
