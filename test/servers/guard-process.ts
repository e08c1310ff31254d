/**
 * The guard: starts servers for the process that started it, and outlives that process just long enough to stop them and
 * to remove their folders, whichever way it ended. The channel between the two closes even when it is killed with SIGKILL.
 * The servers are children of the guard, and it makes their folders, so that at no moment one exists that it does not know.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, closeSync, mkdtempSync, openSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { environment } from './environment.ts'
import { isAsk, type Launch, type Notice, type Order } from './guard-messages.ts'

/** How long a server may take to end after `drop` before it is killed, in milliseconds. */
const PATIENCE = 10_000

interface Child {
  process: ChildProcess
  drop: NodeJS.Signals
  ended: Promise<void>
}

const children = new Map<number, Child>()
const folders = new Set<string>()
let leaving = false

process.on('message', async (message) => {
  if (leaving || !isAsk(message)) return
  try {
    const value = await obey(message.order)
    say(value === undefined ? { answer: message.ask } : { answer: message.ask, value })
  } catch (error) {
    say({ answer: message.ask, error: error instanceof Error ? error.message : String(error) })
  }
})
process.once('disconnect', leave)
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, leave)

async function obey(order: Order): Promise<string | number | undefined> {
  switch (order.kind) {
    case 'folder': {
      const folder = mkdtempSync(join(tmpdir(), 'millpond-server-'))
      folders.add(folder)
      if (order.account) chownSync(folder, order.account.uid, order.account.gid)
      return folder
    }
    case 'remove':
      return remove(order.folder)
    case 'start':
      return start(order.launch)
    case 'signal':
      children.get(order.id)?.process.kill(order.signal)
      return
    case 'drop':
      return drop(children.get(order.id))
  }
}

async function start({ id, command, args, folder, log, drop, account }: Launch): Promise<number> {
  const output = openSync(log, 'a')
  const child = spawn(command, args, { cwd: folder, env: environment(), stdio: ['ignore', output, output], ...account })
  closeSync(output)
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject))
  const { pid } = child
  if (pid === undefined) throw new Error(`${command} has no process`)
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  child.once('exit', (code, signal) => {
    children.delete(id)
    resolve()
    say({ ended: id, how: signal ?? `exit code ${code}` })
  })
  children.set(id, { process: child, drop, ended })
  if (leaving) child.kill('SIGKILL')
  return pid
}

async function drop(child: Child | undefined): Promise<undefined> {
  if (child === undefined) return
  child.process.kill(child.drop)
  child.process.kill('SIGCONT') // a stopped process sees its signals when it goes on
  const timer = setTimeout(() => child.process.kill('SIGKILL'), PATIENCE)
  await child.ended
  clearTimeout(timer)
}

async function remove(folder: string): Promise<undefined> {
  // The children of a killed server may still write for a moment.
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  folders.delete(folder)
}

async function leave(): Promise<void> {
  if (leaving) return
  leaving = true
  await Promise.all([...children.values()].map(drop))
  await Promise.allSettled([...folders].map(remove))
  process.exit()
}

function say(notice: Notice): void {
  // Nobody may be there to hear it.
  if (process.connected) process.send?.(notice, undefined, undefined, () => {})
}
