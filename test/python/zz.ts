import { spawnSync } from 'node:child_process'
const { PYTHON_FOLDER, pythonEnvironment } = await import('/work/wt/move/test/python/environment.ts')
const python = await pythonEnvironment()
for (const args of [['-m','mypy'],['-m','pytest','-q','-x',...process.argv.slice(2)]]) {
  spawnSync(python.program, args, { cwd: PYTHON_FOLDER, env: { ...process.env, ...python.variables }, stdio: 'inherit' })
}
