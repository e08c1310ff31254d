/**
 * Other ways to the statements and scripts of a store: another client, a pooler, a cluster. `npm test` runs a sample of the vectors and what concerns
 * the way itself on them; `npm run test:deep` runs on them all that runs on the stores.
 */
const VARIANTS: readonly string[] = ['better-sqlite3', 'redis-cluster', 'pgbouncer']

/** What a run is for: 'usual', the stores; 'variants', these alone; 'all', both. */
const runsOn = process.env.MILLPOND_TEST_STORES ?? 'usual'

/** Whether the ways are what the run is for. */
export const runsOnVariants = runsOn === 'variants'

export const isInThisRun = ({ name }: { name: string }): boolean =>
  runsOn === 'all' || VARIANTS.includes(name) === (runsOn === 'variants')
