/** Started by `groups.ts`: a worker of grouped jobs. It answers each message: when it is ready, when it works, how many it has handled, and all that it has. */
import { setTimeout as sleep } from 'node:timers/promises'
import { machineTime } from '../../clock.ts'
import { type Grouped, type GroupedName, type GroupSetting, openGrouped } from './contender.ts'

export interface Setup {
  name: GroupedName
  setting: GroupSetting
}
/** A job that was handled. Times are those of the machine's clock, in ms. */
export interface Handled {
  group: string
  began: number
  ended: number
}

/** How long a handler takes, in ms: long enough that two of a group would be seen to overlap. */
const TAKES = 1

const handled: Handled[] = []
let contender: Grouped | undefined

async function answer(message: Setup | 'work' | 'count' | 'tell'): Promise<number | Handled[]> {
  if (message === 'tell') return handled
  if (typeof message === 'object') contender = await openGrouped(message.name, message.setting)
  if (message === 'work') {
    contender?.work(async (group) => {
      const began = machineTime()
      await sleep(TAKES)
      handled.push({ group, began, ended: machineTime() })
    })
  }
  return handled.length
}

process.on('message', async (message) => process.send?.(await answer(message as Setup | 'work' | 'count' | 'tell')))
process.once('disconnect', () => process.exit(0))
