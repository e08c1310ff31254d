/** The rivals' own libraries, where the lab is installed (`npm ci` in `lab/`). */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'

const lab = new URL('../../lab/package.json', import.meta.url)
export const labMissing = existsSync(new URL('node_modules/bullmq', lab)) ? false : 'the lab is not installed'
const load = createRequire(lab)

interface BullQueue {
  add(name: string, data: unknown, options?: Record<string, unknown>): Promise<{ id: string }>
  addBulk(jobs: { name: string; data: unknown; opts?: Record<string, unknown> }[]): Promise<unknown>
  getJobCounts(...states: string[]): Promise<Record<string, number>>
  setGlobalConcurrency(count: number): Promise<unknown>
  pause(): Promise<void>
  obliterate(options: { force: boolean }): Promise<void>
  close(): Promise<void>
}
interface BullWorker {
  on(event: 'failed' | 'completed', listener: () => void): void
  close(): Promise<void>
}
interface BullMQ {
  Queue: new (name: string, options: object) => BullQueue
  Worker: new (name: string, handler: (job: { data: number }) => Promise<unknown>, options: object) => BullWorker
}
export const loadBullMQ = (): BullMQ => load('bullmq')

export interface Boss {
  start(): Promise<unknown>
  stop(options: { graceful: boolean }): Promise<void>
  on(event: 'error', listener: () => void): void
  createQueue(name: string, options?: object): Promise<void>
  send(name: string, data: unknown, options?: object): Promise<string | null>
  insert(name: string, jobs: { data: unknown }[]): Promise<unknown>
  fetch(name: string): Promise<{ id: string }[]>
  fail(name: string, id: string, data: unknown): Promise<unknown>
  work(name: string, options: object, handler: (jobs: { data: { n: number } }[]) => Promise<void>): Promise<string>
}
export const loadPgBoss = (): { PgBoss: new (options: object) => Boss } => load('pg-boss')
