/** A store of its own for a test of the command, by kind; servers only where they run. */
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { dropSchema, newSchema } from '../stores/postgres-fixture.ts'
import { freshPrefix, removePrefix } from '../stores/redis-fixture.ts'
import { after, scratch } from '../support/cleaning.ts'

const KINDS = ['sqlite', 'redis', 'postgres'] as const
type Kind = (typeof KINDS)[number]

/** The same test on every store that the command can open. */
export function onStores(name: string, run: (t: TestContext, url: string, kind: Kind) => Promise<void>): void {
  for (const kind of KINDS) {
    const skip = kind === 'sqlite' ? false : missingReason(kind)
    test(`${kind}: ${name}`, { skip }, (t) => run(t, freshUrl(t, kind), kind))
  }
}

/** A fresh store, gone after the test. */
export function freshUrl(t: TestContext, kind: Kind): string {
  if (kind === 'sqlite') return `sqlite:${join(scratch(t), 'jobs.db')}`
  const server = serverUrl(kind) ?? ''
  if (kind === 'redis') {
    const prefix = freshPrefix()
    after(t, () => removePrefix(server, prefix))
    return `${server}?prefix=${prefix}`
  }
  const schema = newSchema()
  after(t, () => dropSchema(schema))
  return `${server}?schema=${schema}`
}
