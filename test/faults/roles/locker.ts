/** Holds the write lock of the file, as any other program might, from "lock" until "unlock". */

import { DatabaseSync } from 'node:sqlite'
import { config, onHearing, say } from './role.ts'

export interface LockerConfig {
  path: string
}

const db = new DatabaseSync(config<LockerConfig>().path, { timeout: 10_000 })
onHearing('lock', () => {
  db.exec('begin immediate')
  say('lock')
})
onHearing('unlock', () => {
  db.exec('rollback')
  say('unlock')
})
