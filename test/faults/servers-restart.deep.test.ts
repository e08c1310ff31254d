import './servers-restart.test.ts'
