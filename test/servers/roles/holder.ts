/** Starts one server of each kind, says which processes and folders they are, and waits to be killed. */

import { guard } from '../guard.ts'
import { startPgBouncer } from '../pgbouncer.ts'
import { startPostgres } from '../postgres.ts'
import { startRedis } from '../redis.ts'

const redis = await startRedis()
const postgres = await startPostgres()
const pgbouncer = await startPgBouncer(postgres.url)
const all = [redis, postgres, pgbouncer]
process.stdout.write(
  `${JSON.stringify({ guard: guard().pid, pids: all.map(({ pid }) => pid), folders: all.map(({ folder }) => folder) })}\n`,
)
setInterval(() => {}, 60_000)
