/** A fresh process: takes one task from its parent, performs it, and sends what came out. */
import { type Placed, perform } from './task.ts'

function isTask(message: unknown): message is { task: Placed } {
  return typeof message === 'object' && message !== null && 'task' in message
}

process.once('disconnect', () => process.exit())
process.once('message', async (message) => {
  if (!isTask(message)) throw new Error('expected a task')
  const outcome = await perform(message.task)
  process.send?.({ outcome }, () => process.exit(0))
})
