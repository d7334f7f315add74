//! What clients do with a path.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

const BUFFER: usize = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(30);

pub async fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = timeout(PATIENCE, TcpStream::connect(address)).await.context("no connection")??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Moves so many bytes over so many streams, and tells how long it took.
pub async fn bulk(address: SocketAddr, streams: u64, bytes: u64) -> Result<Duration> {
    let mut open = Vec::new();
    for _ in 0..streams {
        open.push(ready(address).await?);
    }
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for mut stream in open {
        tasks.spawn(async move {
            stream.write_u64(bytes / streams).await?;
            drain(&mut stream, bytes / streams).await
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(started.elapsed())
}

/// A stream to the source that has carried a byte already.
pub async fn ready(address: SocketAddr) -> Result<TcpStream> {
    let mut stream = connect(address).await?;
    stream.write_u64(1).await?;
    timeout(PATIENCE, drain(&mut stream, 1)).await.context("no first byte")??;
    Ok(stream)
}

async fn drain(stream: &mut TcpStream, bytes: u64) -> Result<()> {
    let (mut buffer, mut left) = (vec![0; BUFFER], bytes);
    while left > 0 {
        let count = timeout(PATIENCE, stream.read(&mut buffer)).await.context("nothing comes")??;
        if count == 0 {
            bail!("the stream ended {left} bytes early");
        }
        left -= count as u64;
    }
    Ok(())
}

/// Asks for more than comes in this time, and tells what came.
pub async fn drink(mut stream: TcpStream, span: Duration) -> Result<u64> {
    stream.write_u64(u64::MAX >> 1).await?;
    let (mut buffer, mut sum) = (vec![0; BUFFER], 0);
    let read = async {
        loop {
            match stream.read(&mut buffer).await {
                Ok(count) if count > 0 => sum += count as u64,
                _ => return,
            }
        }
    };
    let _over = timeout(span, read).await;
    Ok(sum)
}

/// Takes so many bytes a second for a time, and tells what came.
pub async fn paced(address: SocketAddr, rate: u64, span: Duration) -> Result<u64> {
    let mut stream = ready(address).await?;
    let (started, step) = (tokio::time::Instant::now(), Duration::from_millis(10));
    let (mut buffer, mut sum, mut ticks) = (vec![0; BUFFER], 0, 0_u32);
    while started.elapsed() < span {
        ticks += 1;
        let part = rate / 100;
        stream.write_u64(part).await?;
        let mut left = part;
        while left > 0 && started.elapsed() < span {
            match timeout(span, stream.read(&mut buffer)).await {
                Ok(Ok(count)) if count > 0 => {
                    left -= (count as u64).min(left);
                    sum += count as u64;
                }
                _ => return Ok(sum),
            }
        }
        sleep_until(started + step * ticks).await;
    }
    Ok(sum)
}

/// Asks and hears 1 KiB on so many streams, one after the other on each; gives the times in microseconds.
pub async fn small(address: SocketAddr, streams: usize, rounds: usize) -> Result<Vec<f64>> {
    let mut tasks = JoinSet::new();
    for _ in 0..streams {
        tasks.spawn(async move {
            let mut stream = connect(address).await?;
            let (question, mut answer) = ([7; 1024], [0; 1024]);
            let mut times = Vec::with_capacity(rounds);
            for _ in 0..rounds {
                let started = Instant::now();
                stream.write_all(&question).await?;
                timeout(PATIENCE, stream.read_exact(&mut answer)).await.context("no answer")??;
                times.push(started.elapsed().as_secs_f64() * 1e6);
            }
            anyhow::Ok(times)
        });
    }
    let mut all = Vec::new();
    while let Some(done) = tasks.join_next().await {
        all.extend(done??);
    }
    Ok(all)
}

/// Opens, uses and closes streams, 16 at a time, so many in all; tells how many went in a second.
pub async fn opens(address: SocketAddr, count: usize) -> Result<f64> {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        tasks.spawn(async move {
            for _ in 0..count / 16 {
                let mut stream = connect(address).await?;
                stream.write_all(b"x").await?;
                timeout(PATIENCE, stream.read_exact(&mut [0])).await.context("no answer")??;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(count as f64 / started.elapsed().as_secs_f64())
}

/// Sends greetings that belong to nobody, so many in all, and tells how many went in a second.
pub async fn strangers(address: SocketAddr, greeting: Vec<u8>, count: usize) -> f64 {
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let greeting = greeting.clone();
        tasks.spawn(async move {
            for _ in 0..count / 32 {
                // Whoever is refused at the door has been served as well.
                if let Ok(mut stream) = TcpStream::connect(address).await {
                    let _sent = stream.write_all(&greeting).await;
                    let _end = timeout(PATIENCE, stream.read(&mut [0])).await;
                }
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    count as f64 / started.elapsed().as_secs_f64()
}
