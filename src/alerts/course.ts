/**
 * The course of an alert, of one rule and one queue:
 *
 *   quiet ──above──► pending ──for so long──► firing ──no longer above──► recovering ──for so long──► quiet
 *     ▲                 │                        ▲                            │
 *     └──no longer──────┘                        └────────────above───────────┘
 *
 * The two waits, and a value for the way back that may be lower, keep an alert from firing again and again around its threshold.
 * Quiet ones are not kept.
 */
import type { CheckedRule } from './rules.ts'

export interface AlertState {
  phase: 'pending' | 'firing' | 'recovering'
  /** Since when it is in this phase, in milliseconds since 1970. */
  since: number
  /** Since when the value has been above, by the same clock. */
  above: number
}

export type Turn = 'firing' | 'resolved'

/**
 * @param value undefined: there is none, which is not above anything
 * @returns the state now, undefined if it is quiet; and what people are told of, if anything
 */
export function advance(
  rule: CheckedRule,
  state: AlertState | undefined,
  value: number | undefined,
  now: number,
): { state: AlertState | undefined; turn?: Turn } {
  const isOn = state?.phase === 'firing' || state?.phase === 'recovering'
  const isAbove = value !== undefined && value > (isOn ? rule.resolveBelow : rule.above)
  if (state === undefined || state.phase === 'pending') {
    if (!isAbove) return { state: undefined }
    const above = state?.above ?? now
    if (now - above < rule.for) return { state: { phase: 'pending', since: above, above } }
    return { state: { phase: 'firing', since: now, above }, turn: 'firing' }
  }
  const { above } = state
  if (isAbove) return { state: state.phase === 'firing' ? state : { phase: 'firing', since: now, above } }
  const since = state.phase === 'recovering' ? state.since : now
  if (now - since < rule.resolveAfter) return { state: { phase: 'recovering', since, above } }
  return { state: undefined, turn: 'resolved' }
}
