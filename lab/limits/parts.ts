/** The parts by name, each loaded only where it is measured. */
import type { Part } from './part.ts'

const LOADERS = {
  rates: async () => (await import('./parts/rates.ts')).rates,
  pauses: async () => (await import('./parts/pauses.ts')).pauses,
  fair: async () => (await import('./parts/fair.ts')).fair,
  blocked: async () => (await import('./parts/blocked.ts')).blocked,
  report: async () => (await import('./parts/report.ts')).report,
  drain: async () => (await import('./parts/drain.ts')).drain,
} satisfies Record<string, () => Promise<Part>>

export type PartName = keyof typeof LOADERS

export const PARTS = ['rates', 'pauses', 'fair', 'blocked', 'report', 'drain'] as const satisfies readonly PartName[]

export const partOf = (name: PartName): Promise<Part> => LOADERS[name]()
