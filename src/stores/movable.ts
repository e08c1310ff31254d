/** A store for tests: its clock stands still until it is moved. On memory, so that nothing is left behind. */

import type { Store } from '../store.ts'
import { Forecast } from './memory/forecast.ts'
import { openMemory } from './memory/index.ts'
import { observed } from './telemetry.ts'

export type { Forecast, HeldClaim } from './memory/forecast.ts'

/** @param clock milliseconds since 1970 */
export function openMovable(clock: () => number): { store: Store; forecast: Forecast } {
  const { store, state } = openMemory('memory:', { clock })
  return { store: observed(store), forecast: new Forecast(state) }
}
