/** The page in one browser, which takes seconds to start. Each file imported here holds the tests of one matter. */
import { after } from 'node:test'
import { closeBrowser } from './browser.ts'
import './page.ts'
import './page-access.ts'
import './page-attention.ts'
import './page-bulk.ts'
import './page-drill.ts'
import './page-hostile.ts'
import './page-manners.ts'
import './page-schedules.ts'
import './page-search.ts'
import './page-views.ts'

after(closeBrowser)
