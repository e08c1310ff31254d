import type { QueueSettings } from '../store.ts'
import { DEFAULTS as CONTRACT } from '../values/contract-defaults.ts'

const { grouped: _, ...settings } = CONTRACT.queue

/** The settings of a queue that were never set. */
export const DEFAULTS: Readonly<Required<Omit<QueueSettings, 'queue' | 'grouped'>>> = settings
