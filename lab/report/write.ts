/** Writes the report: the record, the page and the Markdown. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { markdownOf } from './markdown.ts'
import type { Report } from './model.ts'
import { installed, pageOf } from './page.ts'

export function write(report: Report, folder: string): void {
  writeFileSync(join(folder, 'report.json'), `${JSON.stringify(report, null, 1)}\n`)
  writeFileSync(join(folder, 'report.md'), markdownOf(report))
  writeFileSync(join(folder, 'index.html'), pageOf(report, installed()))
}
