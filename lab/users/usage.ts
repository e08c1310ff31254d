/** Where the machine's time goes: CPU of every process of a run, from Linux' `/proc`. */
import type { Child } from '../child.ts'
import { type Process, processes } from '../cpu.ts'

/** CPU seconds by what a process is. */
export type Usage = Record<Part, number>

export const PARTS = ['generator', 'server', 'consumer', 'Redis', 'PostgreSQL', 'its log'] as const
export type Part = (typeof PARTS)[number]

/**
 * What this process, those that it started, and theirs, have used so far; undefined where there is no `/proc`. The generator comes
 * and goes, so it is known by what our ended children have used: nothing else may end between two looks.
 */
export function usage(servers: readonly Child[], consumers: readonly Child[]): Usage | undefined {
  const is = (children: readonly Child[], id: number) => children.some(({ pid }) => pid === id)
  const all = processes()
  if (all === undefined) return undefined
  const used: Usage = { generator: 0, server: 0, consumer: 0, Redis: 0, PostgreSQL: 0, 'its log': 0 }
  for (const [pid, { name, title, own, ended }] of all) {
    if (pid === process.pid) used.generator += ended
    else if (!descends(pid, all)) continue
    else if (is(servers, pid)) used.server += own
    else if (is(consumers, pid)) used.consumer += own
    else if (name === 'redis-server') used.Redis += own
    else if (name === 'postgres')
      used[/walwriter|checkpointer|background writer/.test(title) ? 'its log' : 'PostgreSQL'] += own
  }
  return used
}

/** What was used between two looks, in µs for each of so many requests. */
export function perRequest(before: Usage, after: Usage, requests: number): Usage {
  const used = { ...after }
  for (const part of PARTS) used[part] = ((after[part] - before[part]) * 1e6) / requests
  return used
}

function descends(pid: number, all: ReadonlyMap<number, Process>): boolean {
  for (let at: number | undefined = pid; at !== undefined; at = all.get(at)?.parent) if (at === process.pid) return true
  return false
}
