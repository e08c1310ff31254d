/**
 * Sends mails until it is ended: `sender.ts VARIANT URL PORT FROM TO`. Where the mails wait in an array, FROM and TO say which of them this
 * process has.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { ready } from '../../role.ts'
import { address } from './addresses.ts'
import { openEmails } from './emails.ts'
import { hello, send } from './mail.ts'
import { RETRY_AFTER, SLOTS } from './settings.ts'
import { variant } from './variants.ts'

const [name = '', url = '', port = '', from = '', to = ''] = process.argv.slice(2)
await hello(Number(port))
if (variant(name).store === 'array') fromArray()
else await fromMillpond()
ready()

/** As it is written by hand: as many workers as there is room for, and whoever is refused comes again. */
function fromArray(): void {
  const emails = Array.from({ length: Number(to) - Number(from) }, (_, n) => address(Number(from) + n))
  const work = async () => {
    for (let email = emails.shift(); email !== undefined; email = emails.shift()) {
      while (!(await send(Number(port), email))) await sleep(RETRY_AFTER)
    }
  }
  for (let n = 0; n < SLOTS; n++) void work()
}

async function fromMillpond(): Promise<void> {
  const { emails } = await openEmails(name, url)
  emails.work(async (job, ctx) => ((await send(Number(port), job.data)) ? undefined : ctx.rateLimited(RETRY_AFTER)), {
    concurrency: SLOTS,
  })
}
