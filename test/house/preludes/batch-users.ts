import postgres from 'postgres'

interface User {
  id: number
  name: string
}
class NotFound extends Error {}
const sql = postgres(process.env.MILLPOND_TEST_POSTGRES ?? '', { max: 1, onnotice: () => {} })
await sql`create temporary table users as select 7 as id, 'Ada' as name`
// After the block:
if (user instanceof Error || user.name !== 'Ada') throw new Error('another user')
await sql.end()
