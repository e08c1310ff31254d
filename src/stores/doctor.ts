/**
 * Looks at a store from outside: whether its server, its settings and its tables keep what was acknowledged. Each store
 * has a `doctor.ts` of its own. It opens connections of its own and changes nothing, so that it also sees a store which cannot be opened.
 */
import { MillpondError } from '../values/errors/errors.ts'
import type { Examine, Finding, SchemaState } from './examination.ts'
import { shardsIn } from './shard-urls.ts'

interface Doctor {
  examine: Examine
  schemaState(url: string): Promise<SchemaState>
}

const DOCTORS: Record<string, () => Promise<Doctor>> = {
  sqlite: () => import('./sqlite/doctor.ts'),
  redis: () => import('./redis/doctor.ts'),
  rediss: () => import('./redis/doctor.ts'),
  'redis+sentinel': () => import('./redis/doctor.ts'),
  'rediss+sentinel': () => import('./redis/doctor.ts'),
  postgres: () => import('./postgres/doctor.ts'),
  postgresql: () => import('./postgres/doctor.ts'),
  amqp: () => import('./rabbitmq/doctor.ts'),
  amqps: () => import('./rabbitmq/doctor.ts'),
}

/** @throws UnknownScheme, and as the store's own */
async function doctorOf(url: string): Promise<Doctor> {
  const scheme = url.slice(0, Math.max(0, url.indexOf(':'))).toLowerCase()
  const load = Object.hasOwn(DOCTORS, scheme) ? DOCTORS[scheme] : undefined
  if (load !== undefined) return load()
  const known = Object.keys(DOCTORS).map((name) => `${name}:`)
  throw new MillpondError('UnknownScheme', `only a store that lasts can be looked at: ${known.join(', ')}`)
}

/** @throws UnknownScheme, InvalidOption, DriverMissing, `Store…` */
export async function examineStore(given: string): Promise<Finding[]> {
  const urls = shardsIn(given).urls.map(String)
  const found = await Promise.all(urls.map(async (url) => (await doctorOf(url)).examine(url)))
  if (found.length === 1) return found.flat()
  return found.flatMap((findings, shard) =>
    findings.map((one) => ({ ...one, text: `shard ${shard + 1} of ${urls.length}: ${one.text}` })),
  )
}

/** Of several stores the oldest. @throws as `examineStore` */
export async function schemaState(given: string): Promise<SchemaState> {
  const urls = shardsIn(given).urls.map(String)
  const [first, ...others] = await Promise.all(urls.map(async (url) => (await doctorOf(url)).schemaState(url)))
  return others.reduce((oldest, one) => (one.found < oldest.found ? one : oldest), first as SchemaState)
}
