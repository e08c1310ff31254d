/** The page on stores of each kind. */
import { after } from 'node:test'
import { closeBrowser } from './browser.ts'
import './page.ts'
import './page-views.ts'

after(closeBrowser)
