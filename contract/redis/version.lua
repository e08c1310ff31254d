-- The version of the data: of what the keys are called and what they hold. Each change that an earlier client would misread raises it.
-- No key: there is no queue yet.

local VERSION = 2
