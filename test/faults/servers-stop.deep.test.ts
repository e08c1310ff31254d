import './servers-stop.test.ts'
