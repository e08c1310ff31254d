import type { Stored } from '../../values/encoding/stored.ts'
import type { Duration } from '../../values/time/duration.ts'
import type { ChildQueue, RunOptions, StepOptions, StepRun, Steps, WaitOptions } from './step-context.ts'

/** A context whose steps are made when a handler first asks for them. Errors are in the promises. */
export abstract class WithSteps implements Steps {
  /** @throws NotSupported, InvalidOption */
  protected abstract steps(): Steps

  async step<Result>(name: string, run: StepRun<Result>, options?: StepOptions): Promise<Stored<Result>> {
    return this.steps().step(name, run as () => Result, options as StepOptions & { transaction?: false })
  }

  async sleep(name: string, duration: Duration): Promise<void> {
    return this.steps().sleep(name, duration)
  }

  async waitFor<Data>(name: string, options?: WaitOptions): Promise<Data> {
    return this.steps().waitFor<Data>(name, options)
  }

  async run<Data, Result>(name: string, queue: ChildQueue<Data>, data: Data, options?: RunOptions): Promise<Result> {
    return this.steps().run<Data, Result>(name, queue, data, options)
  }

  once(name: string): string {
    return this.steps().once(name)
  }
}

/** What refuses steps in a batch. */
export const IN_BATCH = 'steps need a handler of single jobs; this worker has the option batch'
