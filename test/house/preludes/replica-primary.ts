import type { Context } from 'millpond'

declare const ctx: Context
declare const primaryDb: { query: string }
declare const replicaDb: { query: string }
