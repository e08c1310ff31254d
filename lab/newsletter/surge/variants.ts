/** The programs of E2, in Node, Go and Python: the plain ones of the write-up, and those with Millpond. */
import { fileURLToPath } from 'node:url'
import { byName } from '../../variants.ts'
import { WORKERS } from '../settings.ts'
import { goProgram, pythonProgram } from './languages.ts'
import type { Command } from './program.ts'

/** Where a run is. */
export interface Place {
  folder: string
  port: number
  /** The port of `millpond serve`, of a variant that has one. */
  service: number
}

export interface Surge {
  title: string
  kind: 'plain' | 'ours'
  /** Answers `POST /register`. The second one is started after the signal. */
  server(place: Place, which: 'first' | 'second'): Command
  worker?(place: Place): Command
  /** `millpond serve`. */
  service?(place: Place): Command
  /** In the middle of the load, to the server and the worker; both are started again. */
  signal?: 'SIGKILL' | 'SIGTERM'
  /** Whether we wait for all mails; with a single worker they would take hours. */
  awaited: boolean
  /** What a killed worker held comes back once its lease is over. */
  leases?: true
  /** Every accepted mail must go out. */
  promises?: true
  /** Of the write-up. */
  published?: { success: number; p50?: number; p99?: number; mean?: number }
}

const script = (file: string) => fileURLToPath(new URL(file, import.meta.url))
const node = (file: string, ...args: (string | number)[]): Command => ({
  name: file,
  command: process.execPath,
  args: [
    '--disable-warning=ExperimentalWarning',
    '--disable-warning=MillpondWarning',
    script(file),
    ...args.map(String),
  ],
})
const go = (...args: (string | number)[]): Command => ({
  name: 'newsletter in Go',
  command: goProgram(),
  args: args.map(String),
})
const python = (...args: (string | number)[]): Command => pythonProgram(args.map(String))

const store = ({ folder }: Place) => `sqlite:${encodeURI(folder)}/jobs.db`
const serve = (place: Place): Command => ({
  ...node('../../../src/cli/main.ts', 'serve', '--store', store(place), '--port', place.service),
  ready: /http:\/\/127\.0\.0\.1/,
})
const url = ({ service }: Place) => `http://127.0.0.1:${service}`

const goQueue =
  (size: number, workers: number): Surge['server'] =>
  ({ folder, port }) =>
    go('queue', folder, port, size, workers)
const pythonPlain =
  (threads: number): Surge['server'] =>
  ({ folder, port }) =>
    python('plain', folder, port, threads)

/** A single worker, so that the queue fills; after the signal there are enough to send what waits. */
const workersOf = (which: 'first' | 'second'): number => (which === 'first' ? 1 : WORKERS)
const spilling = (size: number): Surge => ({
  title: `Millpond in memory, ${size.toLocaleString('en')} of them, with spill`,
  ...{ kind: 'ours', awaited: true, signal: 'SIGTERM', leases: true, promises: true },
  server: ({ folder, port }, which) => node('../server.ts', 'spill', folder, port, size, workersOf(which)),
})

const VARIANTS = {
  'node-plain': {
    title: 'Node, send before answering',
    ...{ kind: 'plain', awaited: true },
    server: ({ folder, port }) => node('../server.ts', 'plain', folder, port),
  },
  'go-plain': {
    title: 'Go, send before answering',
    ...{ kind: 'plain', awaited: true },
    server: ({ folder, port }) => go('plain', folder, port),
    published: { success: 1, p50: 5000 },
  },
  'python-1': {
    title: 'Python, 1 thread',
    ...{ kind: 'plain', awaited: false },
    server: pythonPlain(1),
    published: { success: 0.002 },
  },
  'python-100': {
    title: 'Python, 100 threads',
    ...{ kind: 'plain', awaited: false },
    server: pythonPlain(100),
    published: { success: 0.23, p50: 25_900 },
  },
  'python-1000': {
    title: 'Python, 1,000 threads',
    ...{ kind: 'plain', awaited: true },
    server: pythonPlain(1000),
    published: { success: 1, p50: 5000 },
  },
  'go-0-1': {
    title: 'Go, queue of 0, 1 worker',
    ...{ kind: 'plain', awaited: false },
    server: goQueue(0, 1),
    published: { success: 0.0023, mean: 30_000 },
  },
  'go-1000-1': {
    title: 'Go, queue of 1,000, 1 worker',
    ...{ kind: 'plain', awaited: false },
    server: goQueue(1000, 1),
    published: { success: 0.336, mean: 19_900 },
  },
  'go-3000-1': {
    title: 'Go, queue of 3,000, 1 worker',
    ...{ kind: 'plain', awaited: false },
    server: goQueue(3000, 1),
    published: { success: 1, mean: 0.97, p99: 5 },
  },
  'python-3000-1000': {
    title: 'Python, queue of 3,000, 1,000 workers',
    ...{ kind: 'plain', awaited: true, signal: 'SIGKILL' },
    server: ({ folder, port }) => python('queue', folder, port, 3000, WORKERS),
  },
  'go-3000-1000': {
    title: 'Go, queue of 3,000, 1,000 workers',
    ...{ kind: 'plain', awaited: true, signal: 'SIGKILL' },
    server: goQueue(3000, WORKERS),
    published: { success: 1 },
  },
  array: {
    title: 'Node, queue of 3,000, 1,000 workers',
    ...{ kind: 'plain', awaited: true, signal: 'SIGKILL' },
    server: ({ folder, port }) => node('../server.ts', 'array', folder, port, 3000, WORKERS),
  },
  'spill-kill': {
    title: 'Millpond in memory with spill, which promises nothing after a kill',
    ...{ kind: 'ours', awaited: true, signal: 'SIGKILL', leases: true },
    server: ({ folder, port }) => node('../server.ts', 'spill', folder, port, 1000, WORKERS),
  },
  'array-term': {
    title: 'Node, queue of 3,000',
    ...{ kind: 'plain', awaited: true, signal: 'SIGTERM' },
    server: ({ folder, port }, which) => node('../server.ts', 'array', folder, port, 3000, workersOf(which)),
  },
  'spill-0': spilling(0),
  'spill-1000': spilling(1000),
  'spill-3000': spilling(3000),
  sqlite: {
    title: 'Millpond on SQLite, Node',
    ...{ kind: 'ours', awaited: true, signal: 'SIGKILL', leases: true, promises: true },
    server: ({ folder, port }) => node('../server.ts', 'millpond', folder, port),
    worker: ({ folder }) => node('../worker.ts', folder),
  },
  'go-serve': {
    title: 'Millpond on SQLite, Go through millpond serve',
    ...{ kind: 'ours', awaited: true, signal: 'SIGKILL', leases: true, promises: true },
    service: serve,
    server: (place) => go('producer', place.folder, place.port, url(place)),
    worker: (place) => go('worker', place.folder, url(place), WORKERS),
  },
  'python-serve': {
    title: 'Millpond on SQLite, Python through millpond serve',
    ...{ kind: 'ours', awaited: true, signal: 'SIGKILL', leases: true, promises: true },
    service: serve,
    server: (place) => python('producer', place.folder, place.port, url(place)),
    worker: (place) => python('worker', place.folder, url(place), WORKERS),
  },
  'python-store': {
    title: 'Millpond on SQLite, Python on its own store',
    ...{ kind: 'ours', awaited: true, signal: 'SIGKILL', leases: true, promises: true },
    server: (place) => python('store-producer', place.folder, place.port, store(place)),
    worker: (place) => python('store-worker', place.folder, store(place), WORKERS),
  },
} satisfies Record<string, Surge>

export type SurgeName = keyof typeof VARIANTS
export const { NAMES, variant: surge } = byName<SurgeName, Surge>(VARIANTS)
