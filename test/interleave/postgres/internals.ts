/** What must be so inside the tables. The only file of the explorer that reads more of them than the view `jobs`. */

import type pg from 'pg'

/** @param idle nothing waits or runs any more @returns what is wrong */
export async function faultsInside(client: pg.Client, schema: string, queue: string, idle: boolean): Promise<string[]> {
  const { rows } = await client.query(
    `with q as (select id from ${schema}.queues where name = $1),
      live as (select "group" from ${schema}.waiting, q where queue = q.id and state = 'waiting')
    select
      (select count(*) from ${schema}.tickets as t, q where t.queue = q.id and not exists (
        select from ${schema}.groups as g where g.queue = t.queue and g.name = t.name)) as "a ticket without a group",
      (select count(*) from ${schema}.tickets as t, q where t.queue = q.id and $2) as "a ticket in an empty queue",
      (select count(*) from (select name from ${schema}.tickets as t, q where t.queue = q.id group by name having count(*) > 1) as twice) as "two tickets of a group",
      (select count(*) from ${schema}.arrivals as a, q where a.queue = q.id and $2) as "arrivals in an empty queue",
      (select count(*) from ${schema}.children as c, q where c.queue = q.id and c.is_blocked
        and not exists (select from ${schema}.waiting as w where w.id = c.id and w.state = 'blocked')) as "a blocked job without a row",
      (select count(*) from ${schema}.waiting as w, q where w.queue = q.id and w.state = 'blocked'
        and not exists (select from ${schema}.children as c where c.id = w.id and c.is_blocked)) as "a blocked job that nobody frees",
      (select count(*) from ${schema}.children as c, q where c.queue = q.id and c.is_blocked and c.waits_for <> (
        select count(distinct l.parent) from ${schema}.links as l
        where l.is_open and c.id = any (coalesce(l.remaining, l.children)) and l.parent = any (c.after))) as "open links are counted wrongly",
      (select count(*) from ${schema}.children as c join ${schema}.waiting as w on w.id = c.id and w.state <> 'blocked', q
        where c.queue = q.id and exists (select from ${schema}.waiting as p where p.id = any (c.after)
          union all select from ${schema}.running as p where p.id = any (c.after))
        and not exists (select from ${schema}.moves as m where m.queue = q.id and m.cause in ('requeue', 'restore'))
        and not exists (select from ${schema}.totals as m where m.queue = q.id and m.cause in ('requeue', 'restore'))) as "a child does not wait for its parent"`,
    [queue, idle],
  )
  const [row = {}]: Record<string, unknown>[] = rows
  return Object.entries(row).flatMap(([fault, count]) => (Number(count) > 0 ? [fault] : []))
}

/** Jobs that run, by group. */
export function runningByGroup(client: pg.Client, schema: string, queue: string): Promise<Map<string, number>> {
  return countedBy(client, `coalesce("group", '')`, `${schema}.jobs where queue = $1 and state = 'running'`, queue)
}

export function rowsByState(client: pg.Client, schema: string, queue: string): Promise<Map<string, number>> {
  return countedBy(client, 'state', `${schema}.jobs where queue = $1`, queue)
}

async function countedBy(client: pg.Client, what: string, from: string, queue: string): Promise<Map<string, number>> {
  const { rows } = await client.query(`select ${what} as name, count(*) from ${from} group by 1`, [queue])
  return new Map(rows.map(({ name, count }) => [String(name), Number(count)]))
}
