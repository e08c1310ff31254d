/** A real Chromium for the page. */
import { existsSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { type Browser, chromium, type Page } from 'playwright-core'
import { install, mayInstall } from '../servers/install.ts'
import { after } from '../support/cleaning.ts'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const find = (): string | undefined => process.env.MILLPOND_TEST_CHROMIUM ?? PLACES.find((place) => existsSync(place))
const trouble = find() === undefined && mayInstall() ? await install('chromium') : ''
const program = find()

/** Why the page cannot be tested here; false: it can. */
export const noBrowser: string | false =
  program === undefined && `there is no Chromium: install it, or give its path by MILLPOND_TEST_CHROMIUM.${trouble}`

/** A browser of one's own. */
export const launch = (): Promise<Browser> =>
  chromium.launch({
    ...(program !== undefined && { executablePath: program }),
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-dev-shm-usage'],
  })

let starting: Promise<Browser> | undefined

function browser(): Promise<Browser> {
  starting ??= launch()
  return starting
}

/** Ends it, after the last test. */
export const closeBrowser = async (): Promise<void> => (await starting)?.close()

export interface Visit {
  page: Page
  /** Errors of scripts, refusals of the policy, failed requests, and dialogs, which are the sign of a script of somebody else. */
  faults: string[]
  /** All that was asked for. */
  requests: string[]
}

interface VisitOptions {
  width?: number
  dark?: boolean
}

/** A fresh page in a context of its own. Answers of 4xx and 5xx count as no fault. */
export async function visit(
  t: TestContext,
  url: string,
  { width = 1280, dark = false }: VisitOptions = {},
): Promise<Visit> {
  const context = await (await browser()).newContext({
    viewport: { width, height: 900 },
    colorScheme: dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
  })
  after(t, () => context.close())
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  const [faults, requests]: [string[], string[]] = [[], []]
  page.on('pageerror', ({ message }) => faults.push(message))
  page.on('console', (message) => {
    const isRefusal = /Failed to load resource: the server responded/.test(message.text())
    if ((message.type() === 'error' || message.type() === 'warning') && !isRefusal) faults.push(message.text())
  })
  page.on('dialog', (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => requests.push(request.url()))
  await page.goto(url)
  return { page, faults, requests }
}
