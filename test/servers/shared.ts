/** The servers that a whole test run shares, as its environment names them. */

export const sharedServers = ['redis', 'redis-cluster', 'postgres', 'pgbouncer', 'rabbitmq'] as const

export type SharedServer = (typeof sharedServers)[number]

/** `MILLPOND_TEST_REDIS_CLUSTER` for `redis-cluster`. */
export const variableOf = (name: SharedServer): string => `MILLPOND_TEST_${name.toUpperCase().replaceAll('-', '_')}`

/** Why the server of that variable could not be started. */
export const missingOf = (name: SharedServer): string => `${variableOf(name)}_MISSING`

/** undefined: there is none; `missingReason` says why. A cluster's URL lists several nodes: `redis://host:port,host:port,host:port`. */
export const serverUrl = (name: SharedServer): string | undefined => process.env[variableOf(name)] || undefined

/** What a test that needs the server gives as its reason to be skipped; false: it need not be. */
export function missingReason(name: SharedServer): string | false {
  if (serverUrl(name) !== undefined) return false
  return process.env[missingOf(name)] ?? `${variableOf(name)} is not set: run npm test, or npm run servers`
}
