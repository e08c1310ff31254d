-- configure: creates a queue or changes its settings.
-- In:  queue; settings: those that are given, as JSON with the names and shapes of contract/operations.md.
-- Out: nothing.
-- Of a setting, an operator's value is in effect, else the code's, else the default (contract/operations.md). Who has
-- given what is kept as it was given: run `given` first, and `give` after `configure`, which gets what comes into
-- effect.
-- Invariant: what is not given stays. Not run where nothing is given: a queue's name alone makes none.
-- (`->>` gives NULL for what is null as for what is not there; json_type tells them apart.)

-- @statement configure
insert into millpond_queues (
  name, capacity, keep_done, keep_dead, paused, attempts, timeout, lease,
  backoff_base, backoff_factor, backoff_max, backoff_jitter,
  most, grouped, group_most, rate, rate_step, rate_burst, group_rate, group_step, group_burst
)
select
  :queue, :settings ->> 'capacity', ifnull(:settings ->> 'keepDone', 3600000), ifnull(:settings ->> 'keepDead', 604800000),
  ifnull(:settings ->> 'paused', 0), ifnull(:settings ->> 'attempts', 10), :settings ->> 'timeout', ifnull(:settings ->> 'lease', 30000),
  ifnull(:settings ->> '$.backoff.base', 1000), ifnull(:settings ->> '$.backoff.factor', 2),
  ifnull(:settings ->> '$.backoff.max', 3600000), ifnull(:settings ->> '$.backoff.jitter', 0.5),
  :settings ->> 'running',
  coalesce(:settings ->> 'groupRunning', :settings ->> 'groupRate', :settings ->> 'grouped') is not null,
  :settings ->> 'groupRunning',
  :settings ->> 'rate', rate_step, ifnull(:settings ->> '$.rate.burst', max(1, rate_count * 100 / rate_per)),
  :settings ->> 'groupRate', group_step, ifnull(:settings ->> '$.groupRate.burst', max(1, group_count * 100 / group_per))
from (
  select *, (rate_per * 1000 + rate_count - 1) / rate_count as rate_step, (group_per * 1000 + group_count - 1) / group_count as group_step
  from (
    select
      :settings ->> '$.rate.count' as rate_count, :settings ->> '$.rate.per' as rate_per,
      :settings ->> '$.groupRate.count' as group_count, :settings ->> '$.groupRate.per' as group_per
  )
)
where true
on conflict (name) do update set
  capacity       = iif(json_type(:settings, '$.capacity') is null, capacity, excluded.capacity),
  keep_done      = ifnull(:settings ->> 'keepDone', keep_done),
  keep_dead      = ifnull(:settings ->> 'keepDead', keep_dead),
  paused         = ifnull(:settings ->> 'paused', paused),
  attempts       = ifnull(:settings ->> 'attempts', attempts),
  timeout        = iif(json_type(:settings, '$.timeout') is null, timeout, excluded.timeout),
  lease          = ifnull(:settings ->> 'lease', lease),
  backoff_base   = ifnull(:settings ->> '$.backoff.base', backoff_base),
  backoff_factor = ifnull(:settings ->> '$.backoff.factor', backoff_factor),
  backoff_max    = ifnull(:settings ->> '$.backoff.max', backoff_max),
  backoff_jitter = ifnull(:settings ->> '$.backoff.jitter', backoff_jitter),
  most           = iif(json_type(:settings, '$.running') is null, most, excluded.most),
  rate           = iif(json_type(:settings, '$.rate') is null, rate, excluded.rate),
  rate_step      = iif(json_type(:settings, '$.rate') is null, rate_step, excluded.rate_step),
  rate_burst     = iif(json_type(:settings, '$.rate') is null, rate_burst, excluded.rate_burst),
  grouped        = max(grouped, excluded.grouped),
  group_most     = iif(json_type(:settings, '$.groupRunning') is null, group_most, excluded.group_most),
  group_rate     = iif(json_type(:settings, '$.groupRate') is null, group_rate, excluded.group_rate),
  group_step     = iif(json_type(:settings, '$.groupRate') is null, group_step, excluded.group_step),
  group_burst    = iif(json_type(:settings, '$.groupRate') is null, group_burst, excluded.group_burst)

-- @statement settings
-- values, code and operator: JSON; the last two null where nothing was given.
select code, operator, json_object(
  'capacity', capacity, 'keepDone', keep_done, 'keepDead', keep_dead, 'paused', json(iif(paused, 'true', 'false')), 'attempts', attempts,
  'backoff', json_object('base', backoff_base, 'factor', backoff_factor, 'max', backoff_max, 'jitter', backoff_jitter),
  'lease', lease, 'timeout', timeout, 'running', most, 'rate', json(rate), 'grouped', json(iif(grouped, 'true', 'false')),
  'groupRunning', group_most, 'groupRate', json(group_rate)
) as "values"
from millpond_queues where name = :queue

-- @statement give
update millpond_queues set code = :code, operator = :operator where name = :queue
