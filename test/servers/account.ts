/** The account that servers run under which refuse to run as root. */

import { readFileSync } from 'node:fs'
import { ServerMissing } from './server.ts'

export interface Account {
  uid: number
  gid: number
}

/** @returns undefined: they may run as whoever runs us */
export function ordinaryAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  const accounts = new Map(
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map((line) => line.split(':'))
      .map(([name = '', , uid, gid]) => [name, { uid: Number(uid), gid: Number(gid) }]),
  )
  const account = accounts.get('postgres') ?? accounts.get('nobody')
  if (account === undefined) {
    throw new ServerMissing(
      'PostgreSQL and PgBouncer refuse to run as root, and there is neither an account "postgres" nor "nobody"',
    )
  }
  return account
}
