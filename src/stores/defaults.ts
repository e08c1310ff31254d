import { DEFAULTS as CONTRACT } from '../values/settings/contract-defaults.ts'
import type { QueueSettings } from '../values/settings/settings.ts'

const { grouped: _, ...settings } = CONTRACT.queue

/** The settings of a queue that were never set. */
export const DEFAULTS: Readonly<Required<Omit<QueueSettings, 'queue' | 'grouped'>>> = settings
