//! PyBullet's locomotion tasks, bit for bit: robots, rewards, vectorised rollouts
