/**
 * Which SQLite library the store runs on: Node's own, or the application's better-sqlite3.
 *
 * Two libraries in one process must not open the same file. POSIX locks belong to the process: when one library closes the
 * file, the system drops the locks of the other, and their writes mix. So the application hands its class to the store.
 *
 * A class cannot be sent to the store's thread. The path of the module that exports it can. The thread loads that module, and with it the
 * same shared library, so both threads share one table of open files and locks.
 */
import { createRequire } from 'node:module'
import { shown } from '../../values/time/duration.ts'
import { invalid } from '../options.ts'

export interface Driver {
  /** Of the module that exports the class; null: node:sqlite. */
  module: string | null
  /** Whether a connection is one of this library. */
  owns(connection: object): boolean
}

type Class = new (...args: never[]) => object

const isClass = (value: unknown): value is Class => typeof value === 'function' && 'prototype' in value

/** Node's own class, without the warning that importing its module gives in some releases; undefined where there is none. */
function nodeClass(): Class | undefined {
  const found: unknown = process.getBuiltinModule('node:sqlite')?.DatabaseSync
  return isClass(found) ? found : undefined
}

/** The class, and those that it extends. */
function* lineage(given: unknown): Generator<Class> {
  for (let each = given; isClass(each); each = Object.getPrototypeOf(each)) yield each
}

/** The loaded module whose export is this class. `import` lists CommonJS modules here, too. */
function moduleOf(wanted: Class): string | undefined {
  // All of the process, whatever path the function is for.
  const loaded = createRequire(process.execPath).cache
  return Object.values(loaded).find((module) => module?.exports === wanted)?.filename
}

/** @param given the option `driver` @throws InvalidOption */
export function driverOf(given: unknown): Driver {
  if (given === undefined) {
    return { module: null, owns: (connection) => isOf(nodeClass(), connection) }
  }
  for (const each of lineage(given)) {
    const module = each === nodeClass() ? null : moduleOf(each)
    if (module !== undefined) return { module, owns: (connection) => isOf(each, connection) }
  }
  if (!isClass(given)) invalid(`driver must be the class Database of better-sqlite3, not ${shown(given)}`)
  return invalid(
    'driver is a class that no loaded module exports: pass what require("better-sqlite3") gives, and leave that package out of bundles',
  )
}

const isOf = (wanted: Class | undefined, connection: object): boolean =>
  wanted !== undefined && connection instanceof wanted
