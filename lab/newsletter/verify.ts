/** Holds the answers that the clients got against the mails that were written. */
import type { Outcome } from './messages.ts'

export interface Figures {
  requests: number
  /** Answered with a 2xx. */
  accepted: number
  /** Why the others were not, with their number. */
  failures: Record<string, number>
  /** Of the accepted ones, from sending to the end of the answer, in ms; null when there are none. */
  p50: number | null
  p95: number | null
  p99: number | null
  /** Mails in the maildir. */
  mails: number
  lost: number
  /** The accepted addresses without a mail. */
  missing: string[]
  /** Mails beyond the first to the same address. */
  extra: number
}

/** @param mails how many mails each address got */
export function verify(outcomes: readonly Outcome[], mails: ReadonlyMap<string, number>): Figures {
  const accepted = outcomes.filter(({ status }) => typeof status === 'number' && status >= 200 && status < 300)
  const failures: Record<string, number> = {}
  for (const { status } of outcomes) failures[status] = (failures[status] ?? 0) + 1
  for (const { status } of accepted) delete failures[status]
  const times = accepted.map(({ ms }) => ms).sort((a, b) => a - b)
  const sent = [...mails.values()].reduce((sum, count) => sum + count, 0)
  const missing = accepted.map(({ email }) => email).filter((email) => !mails.has(email))
  return {
    requests: outcomes.length,
    accepted: accepted.length,
    failures,
    p50: percentile(times, 0.5),
    p95: percentile(times, 0.95),
    p99: percentile(times, 0.99),
    mails: sent,
    lost: missing.length,
    missing,
    extra: sent - mails.size,
  }
}

/** The nearest-rank percentile of sorted numbers: one that was really measured. */
function percentile(sorted: readonly number[], share: number): number | null {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null
}
