/** One of 100 jobs is refused by the target or by the source for good: 99 are moved, the one stays and is reported. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { move } from '../../src/move/index.ts'
import { ran } from '../cli/in-process.ts'
import { PLACES } from '../faults/refusing.ts'
import { missingReason } from '../servers/shared.ts'
import { newSchema, server, urlOf } from '../stores/postgres-fixture.ts'
import { connectTo, newPath } from '../stores/sqlite-fixture.ts'
import { after } from '../support/cleaning.ts'

const COUNT = 100
const BAD = 57

/** 100 jobs in a store, one of them with the text. */
async function filled(t: TestContext, url: string, text: string): Promise<{ pond: Millpond; ids: string[] }> {
  const pond = await Millpond.open(url, { maxPayload: 4_000_000 })
  after(t, () => pond.close())
  const data = Array.from({ length: COUNT }, (_, n) => ({ n, text: n === BAD ? text : '' }))
  const ids = (await pond.queue('q').pushMany(data)).map(({ id }) => id)
  return { pond, ids }
}

for (const [name, { skip, place }] of Object.entries(PLACES)) {
  test(`to ${name}`, { skip }, async (t) => {
    const given = await place(t)
    if (given === undefined) return
    const source = `sqlite:${newPath()}`
    const { pond, ids } = await filled(t, source, given.bad)
    const report = await move(source, given.url)
    assert.deepEqual([report.moved, report.left, report.remaining], [COUNT - 1, 1, 1])
    const [queue] = report.queues
    assert.deepEqual(queue?.left, { [given.code]: 1 })
    assert.deepEqual(
      queue?.leftJobs.map(({ id, reason }) => [id, reason]),
      [[ids[BAD], given.code]],
    )
    assert.ok((queue?.leftJobs[0]?.why.length ?? 0) > 10)
    assert.ok(await pond.job(ids[BAD] as string))
    const moved = (await given.pond.queue('q').jobs('waiting', { limit: 1000 })).map(({ id }) => id)
    assert.equal(ids.filter((id) => moved.includes(id)).length, COUNT - 1)
    const { code, out } = await ran(['move', source, given.url])
    assert.equal(code, 1)
    assert.match(out, new RegExp(`1 of q stay at the source: ${given.code}.\\n {2}${ids[BAD]} ${given.code}: .`))
  })
}

const SOURCES: Record<string, { skip: string | false; place: (t: TestContext) => Place }> = {
  SQLite: {
    skip: false,
    place() {
      const path = newPath()
      const refuse = async (event: string) => {
        const connection = connectTo(path)
        connection.exec(`create trigger guard before ${event} on millpond_jobs when old.data like '%zebra%'
          begin select raise(abort, 'not this one'); end`)
        connection.close()
      }
      return { url: `sqlite:${path}`, refuse }
    },
  },
  PostgreSQL: {
    skip: missingReason('postgres') ?? false,
    place(t) {
      const schema = newSchema()
      after(t, () => server(`drop schema ${schema} cascade`))
      const refuse = async (event: string) => {
        await server(`create function ${schema}.guard() returns trigger language plpgsql as $$
          begin
            if row_to_json(old)::text like '%zebra%' then raise 'not this one'; end if;
            return case when tg_op = 'DELETE' then old else new end;
          end $$`)
        const tables = await server(
          `select table_name as name from information_schema.columns join pg_class on relname = table_name
           where table_schema = $1 and column_name = 'data' and relkind = 'r' and relnamespace = $1::regnamespace`,
          [schema],
        )
        for (const table of tables) {
          await server(`create trigger guard before ${event} on ${schema}.${table.name}
            for each row execute function ${schema}.guard()`)
        }
      }
      return { url: `${urlOf('postgres')}?schema=${schema}`, refuse }
    },
  },
}

interface Place {
  url: string
  /** From now on, a job with the text zebra refuses the event. */
  refuse: (event: string) => Promise<void>
}

for (const [name, { skip, place }] of Object.entries(SOURCES)) {
  test(`from ${name}, which refuses to change a job`, { skip }, async (t) => {
    const { url, refuse } = place(t)
    const { ids } = await filled(t, url, 'zebra')
    await refuse('update or delete'.slice(0, name === 'SQLite' ? 6 : undefined))
    const report = await move(url, `sqlite:${newPath()}`)
    assert.deepEqual([report.moved, report.left, report.remaining], [COUNT - 1, 1, 1])
    const [left] = report.queues[0]?.leftJobs ?? []
    assert.deepEqual([left?.id, left?.reason], [ids[BAD], 'StoreRefused'])
  })
}

test('from SQLite, which refuses to remove a job: both ends have it, and the report says so', async (t) => {
  const { url, refuse } = SOURCES.SQLite?.place(t) ?? assert.fail()
  const { ids } = await filled(t, url, 'zebra')
  await refuse('delete')
  const report = await move(url, `sqlite:${newPath()}`)
  assert.deepEqual([report.moved, report.left, report.remaining], [COUNT, 1, 1])
  const [left] = report.queues[0]?.leftJobs ?? []
  assert.deepEqual([left?.id, left?.reason], [ids[BAD], 'StoreRefused'])
})
