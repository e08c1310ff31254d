import './steps-kill.test.ts'
