-- configure: creates a queue or changes its settings.
-- In:  queue; capacity and timeout (applied if set_capacity, set_timeout is 1; null: no limit); likewise most, rate, group_most and group_rate,
--      the rates as JSON; grouped: 1, or 0, which changes nothing; all others null: unchanged.
-- Out: nothing.
-- Invariant: what is not given stays. Not run where nothing is given: a queue's name alone makes none.

-- @statement configure
insert into millpond_queues (
  name, capacity, keep_done, keep_dead, paused, attempts, timeout, lease,
  backoff_base, backoff_factor, backoff_max, backoff_jitter,
  most, grouped, group_most, rate, rate_step, rate_burst, group_rate, group_step, group_burst
) values (
  :queue, :capacity, coalesce(:keep_done, 3600000), coalesce(:keep_dead, 604800000), coalesce(:paused, 0),
  coalesce(:attempts, 10), :timeout, coalesce(:lease, 30000),
  coalesce(:backoff_base, 1000), coalesce(:backoff_factor, 2.0), coalesce(:backoff_max, 3600000), coalesce(:backoff_jitter, 0.5),
  :most, :grouped, :group_most,
  :rate, ((:rate ->> 'per') * 1000 + (:rate ->> 'count') - 1) / (:rate ->> 'count'), ifnull(:rate ->> 'burst', max(1, (:rate ->> 'count') * 100 / (:rate ->> 'per'))),
  :group_rate, ((:group_rate ->> 'per') * 1000 + (:group_rate ->> 'count') - 1) / (:group_rate ->> 'count'), ifnull(:group_rate ->> 'burst', max(1, (:group_rate ->> 'count') * 100 / (:group_rate ->> 'per')))
)
on conflict (name) do update set
  capacity       = case when :set_capacity = 1 then :capacity else capacity end,
  keep_done      = coalesce(:keep_done, keep_done),
  keep_dead      = coalesce(:keep_dead, keep_dead),
  paused         = coalesce(:paused, paused),
  attempts       = coalesce(:attempts, attempts),
  timeout        = case when :set_timeout = 1 then :timeout else timeout end,
  lease          = coalesce(:lease, lease),
  backoff_base   = coalesce(:backoff_base, backoff_base),
  backoff_factor = coalesce(:backoff_factor, backoff_factor),
  backoff_max    = coalesce(:backoff_max, backoff_max),
  backoff_jitter = coalesce(:backoff_jitter, backoff_jitter),
  most           = case when :set_most = 1 then :most else most end,
  rate           = case when :set_rate = 1 then :rate else rate end,
  rate_step      = case when :set_rate = 1 then excluded.rate_step else rate_step end,
  rate_burst     = case when :set_rate = 1 then excluded.rate_burst else rate_burst end,
  grouped        = max(grouped, :grouped),
  group_most     = case when :set_group_most = 1 then :group_most else group_most end,
  group_rate     = case when :set_group_rate = 1 then :group_rate else group_rate end,
  group_step     = case when :set_group_rate = 1 then excluded.group_step else group_step end,
  group_burst    = case when :set_group_rate = 1 then excluded.group_burst else group_burst end,
  limits_total   = limits_total + (:set_most + :set_rate + :set_group_most + :set_group_rate + :grouped > 0)
