/** The process that sends the mails of the Millpond variant: `worker.ts FOLDER`. */

import { ready } from '../role.ts'
import { openEmails } from './emails.ts'
import { Mailbox } from './mailbox.ts'
import { tell } from './messages.ts'
import { WORKERS } from './settings.ts'

const [folder = ''] = process.argv.slice(2)

const mailbox = new Mailbox(folder)
const { pond, emails } = await openEmails(folder)

let returned = 0
pond.on('lost', () => {
  // One message for all that a sweep found.
  if (returned++ > 0) return
  setImmediate(() => {
    tell({ kind: 'returned', count: returned })
    returned = 0
  })
})

emails.work((job, { signal }) => mailbox.send(job.data.email, signal), { concurrency: WORKERS })
ready()
