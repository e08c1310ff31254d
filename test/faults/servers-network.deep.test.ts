import './servers-network.test.ts'
