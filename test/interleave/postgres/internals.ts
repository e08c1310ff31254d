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
      (select count(*) from ${schema}.arrivals as a, q where a.queue = q.id and $2) as "arrivals in an empty queue"`,
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
