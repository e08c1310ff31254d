/** A fresh process: takes one task from its parent, performs it, and sends what came out. */
import { mkdirSync, rmSync } from 'node:fs'
import { perform, type Task } from './measure.ts'

function isTask(message: unknown): message is { task: Task; dir: string } {
  return typeof message === 'object' && message !== null && 'task' in message && 'dir' in message
}

process.once('message', async (message) => {
  if (!isTask(message)) throw new Error('expected a task')
  const { task, dir } = message
  mkdirSync(dir, { recursive: true })
  try {
    const outcome = await perform(task, dir)
    process.send?.({ outcome }, () => process.exit(0))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
})
