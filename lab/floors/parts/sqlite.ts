import { measure, plan } from '../../bench/sections/sqlite.ts'
import { floorsOf, type Part } from '../part.ts'

export const sqlite: Part = async function* ({ runs, quick, tell }) {
  for (const { rival: _, ...line } of plan(quick ? 0.1 : 0.6)) {
    if (line.least === undefined) continue
    tell(`SQLite, ${line.name}`)
    const [warm] = await measure(line, 'full', runs)
    if (warm !== undefined) yield* floorsOf('SQLite FULL', [warm])
  }
}
