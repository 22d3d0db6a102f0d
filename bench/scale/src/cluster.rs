//! Partitions on machines: how evenly they lie, and what moves when a machine comes.

/// A part of the keys that lives, moves and is recovered as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Share of all items, of 1.
    pub share: f64,
    /// Machines with a copy; the first one serves it, where only one does.
    pub homes: Vec<usize>,
}

/// All partitions of a system.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Number of machines.
    pub machines: usize,
    /// Partitions; their shares sum to 1.
    pub partitions: Vec<Partition>,
}

impl Cluster {
    /// Returns the share of all items that each machine stores. The shares sum to the number of copies.
    #[must_use]
    pub fn loads(&self) -> Vec<f64> {
        let mut loads = vec![0.0; self.machines];
        for partition in &self.partitions {
            for &home in &partition.homes {
                loads[home] += partition.share;
            }
        }
        loads
    }

    /// Returns the load of the fullest machine, relative to the mean.
    #[must_use]
    pub fn unevenness(&self) -> f64 {
        let loads = self.loads();
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        loads.iter().fold(0.0, |most: f64, &load| most.max(load)) / mean
    }

    /// Returns the largest partition, relative to the mean.
    #[must_use]
    pub fn partition_unevenness(&self) -> f64 {
        self.partitions.iter().fold(0.0, |most: f64, partition| most.max(partition.share))
            * self.partitions.len() as f64
    }

    /// Returns the partitions with a copy on each machine.
    #[must_use]
    pub fn by_machine(&self) -> Vec<Vec<usize>> {
        let mut found = vec![Vec::new(); self.machines];
        for (number, partition) in self.partitions.iter().enumerate() {
            for &home in &partition.homes {
                found[home].push(number);
            }
        }
        found
    }

    /// Returns how many other machines have copies of a machine's partitions.
    #[must_use]
    pub fn sources(&self, machine: usize) -> usize {
        let mut others: Vec<usize> = self
            .partitions
            .iter()
            .filter(|partition| partition.homes.contains(&machine))
            .flat_map(|partition| partition.homes.iter().copied())
            .filter(|&home| home != machine)
            .collect();
        others.sort_unstable();
        others.dedup();
        others.len()
    }

    /// Adds an empty machine, which takes copies from the fullest machines until it would exceed the mean. Returns
    /// the share of all items that moved.
    pub fn add_machine(&mut self) -> f64 {
        let new = self.machines;
        self.machines += 1;
        let mut loads = self.loads();
        let mean = loads.iter().sum::<f64>() / self.machines as f64;
        let mut kept = self.by_machine();
        let mut moved = 0.0;
        while let Some(fullest) =
            (0..new).filter(|&machine| !kept[machine].is_empty()).max_by(|&a, &b| loads[a].total_cmp(&loads[b]))
        {
            let number = kept[fullest].pop().expect("a machine with partitions has a last one");
            let partition = &mut self.partitions[number];
            if loads[new] + partition.share > mean {
                break;
            }
            if partition.homes.contains(&new) {
                continue;
            }
            let copy = partition.homes.iter().position(|&home| home == fullest).expect("the machine has a copy");
            partition.homes[copy] = new;
            loads[fullest] -= partition.share;
            loads[new] += partition.share;
            moved += partition.share;
        }
        moved
    }
}
