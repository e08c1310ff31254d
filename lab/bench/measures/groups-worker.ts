/**
 * Started by `groups.ts`: a worker of grouped jobs. It begins to work when it is first asked, and answers each time what it has handled since
 * the last.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { machineTime } from '../../clock.ts'
import { ready } from '../../role.ts'
import { type ContenderName, openContender } from '../contender.ts'
import { type Handled, LINE } from './groups.ts'

/** How long a handler takes, in ms: long enough that two of a group would be seen to overlap. */
const TAKES = 1

const [name = '', setting = ''] = process.argv.slice(2)
let handled: Handled[] = []
let isWorking = false
const contender = await openContender(name as ContenderName, JSON.parse(setting))
const line = contender.line(LINE, async ({ group = '' }) => {
  const began = machineTime()
  await sleep(TAKES)
  handled.push({ group, began, ended: machineTime() })
})
ready(() => {
  if (!isWorking) line.work()
  isWorking = true
  const runs = handled
  handled = []
  return { runs }
})
