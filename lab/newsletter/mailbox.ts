/** The mail server: slow, and it really writes each mail. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { MAIL_TAKES } from './settings.ts'

/** A maildir: a mail is written in `tmp/` and moved to `new/`, so that whatever is in `new/` is whole, even after a SIGKILL. */
export class Mailbox {
  readonly #folder: string
  #delivered = 0

  constructor(folder: string) {
    this.#folder = join(folder, 'Maildir')
    for (const part of ['tmp', 'new', 'cur']) mkdirSync(join(this.#folder, part), { recursive: true })
  }

  /** Takes 5 s, as the conversation with a slow mail server does. @param signal gives up before the mail is out */
  async send(email: string, signal?: AbortSignal): Promise<void> {
    await setTimeout(MAIL_TAKES, undefined, signal === undefined ? {} : { signal })
    const name = `${Date.now()}.P${process.pid}Q${++this.#delivered}.${hostname()}`
    const mail = [
      'From: The Millpond Gazette <gazette@millpond.example>',
      `To: ${email}`,
      'Subject: Welcome to the newsletter',
      `Date: ${new Date().toUTCString().replace('GMT', '+0000')}`,
      `Message-ID: <${name}@millpond.example>`,
      '',
      'Good to have you here.',
      '',
    ]
    const draft = join(this.#folder, 'tmp', name)
    await writeFile(draft, mail.join('\r\n'), { flush: true })
    await rename(draft, join(this.#folder, 'new', name))
  }

  count(): number {
    return readdirSync(join(this.#folder, 'new')).length
  }

  /** How many mails each address got, read from the mails themselves. */
  recipients(): Map<string, number> {
    const folder = join(this.#folder, 'new')
    const mails = new Map<string, number>()
    for (const name of readdirSync(folder)) {
      const email = /^To: (.+)\r$/m.exec(readFileSync(join(folder, name), 'utf8'))?.[1]
      if (email === undefined) throw new Error(`${join(folder, name)} is no mail of ours: it has no To`)
      mails.set(email, (mails.get(email) ?? 0) + 1)
    }
    return mails
  }
}
